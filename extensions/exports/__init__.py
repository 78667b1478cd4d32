"""Results and metadata in the formats of others: Every Eval Ever and Croissant."""
