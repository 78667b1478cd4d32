"""Live recognition: the session protocol, a clock that replays a clip as it would arrive, policies, word timings."""
