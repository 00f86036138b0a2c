"""The official SDKs as black boxes: none of them may be able to distinguish a reference node from a Nacos server.

The programs around the SDKs are in `programs/`, one folder a language; the
modules here list them (`registry`), build them (`build`), run them (`program`), start the nodes (`nodes`), expect
results (`scenarios`) and make the table (`run`).
"""
