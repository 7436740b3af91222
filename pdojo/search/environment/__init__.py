"""The game as an environment for learning agents (paper section 3.1): episodes, offered actions, rewards.

`episode.Episode` is plain Python; `pdojo.env` has the same game for gymnasium, and names all of it.
"""
