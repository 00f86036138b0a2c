"""Random timed runs of the model, as large as you like, written as traces that `check` reads like any recording.

The runs are the model's (`distro_model.simulation`); here is what makes files of them: `journal` says which rows a
transition makes, `run` gives each run its seed and its file.
"""
