"""The language of runs: actions are the model's, expectations stand beside them, their text is the scenario."""
