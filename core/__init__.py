"""What every room uses, and what uses none of them: errors, names, seeding, audio, files, progress, engines."""
