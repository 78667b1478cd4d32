"""The leaderboard: a page over a folder of verified results, which `srb verify --out` writes."""
