"""Why a prompt missed and what to change: microscope, breakers, remedies, fits, the prompt doctor. Pure: no IO."""
