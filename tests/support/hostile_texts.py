"""Texts that would run as HTML or script if a page took them as they are."""

EVIL = "<script>alert('plants')</script> & \"quotes\" </style> <!-- {{ 7 * 7 }} \u2028"
