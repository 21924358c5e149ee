"""How the pages become a site: Sphinx reads Markdown with MyST and dresses it with Furo.

These three are kept up, need nothing at reading time that does not lie in the site (no fonts, styles or scripts from
elsewhere), and their search works in pages that are opened as files.
"""

project = "windowlib"
author = "The windowlib authors"
html_title = "windowlib"
html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
smartquotes = False

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_site", "gallery"]
language = "en"
