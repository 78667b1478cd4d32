"""Cards, Hub upload, metric Spaces, submissions and the leaderboard."""
