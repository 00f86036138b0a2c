"""The generated pages of docs/reference, each from the registries that it describes.

`reference` is the table of all pages and writes the simple ones; pages that combine several registries, or registries
with the files of a checkout, have a file each. They are here and not in the kit, since only a checkout has them.
"""
