"""Fairness testing (AequeVox): does a scenario hurt one group of speakers more than another?"""
