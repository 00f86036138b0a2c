"""The explorer in the browser: a bounded cluster that a person steps through, choice by choice.

`walk` is the shown state, a value without HTTP or HTML; `app` is the server around it, on loopback and behind a
token; `templates` are its pages. There is no build step: htmx, which replaces a part of the page, is served from the
package as it was published.
"""
