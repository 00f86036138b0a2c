"""The explorer in the browser: a bounded cluster that a person steps through, choice by choice.

`walk` is what is shown, as a value that knows neither HTTP nor HTML; `app` is the server around it, on loopback and
behind a token; `templates` are its pages. Nothing has to be built: htmx, which exchanges a part of the page, is served
from the package as it was published.
"""
