"""What is installed: the packages, the image, the hook, each built, installed and used as a person would."""
