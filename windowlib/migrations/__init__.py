"""A pipeline's tables built again under another definition, switched in one batch, and back again."""
