"""Tables and pictures from traces and problems: data in, text or a picture out."""
