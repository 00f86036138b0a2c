"""The generated pages of docs/reference, each from the registries that it describes.

`reference` is the table of all pages and writes the plain ones; those that put several registries beside each other, or
beside the files of a checkout, have a file each. They stand here and not in the kit, since only a checkout has them.
"""
