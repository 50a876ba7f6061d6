"""Why a gradient is as it is."""
