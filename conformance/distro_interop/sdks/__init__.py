"""The official SDKs as black boxes: none of them may be able to tell a reference node from a Nacos server.

The programs around the SDKs are in `programs/`, one folder a language; here is who they are (`registry`), how
they are built (`build`) and spoken to (`program`), the nodes they meet (`nodes`), what must happen (`scenarios`) and
the table of it (`run`).
"""
