"""From a record to a picture: groups, layout, renderers, the page."""
