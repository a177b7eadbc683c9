"""Parts that pages are made of: the frame, dialogs, editors, pictures, colours."""
