"""Agents of other shapes. Neither engine imports them; each file runs on both without an edit."""
