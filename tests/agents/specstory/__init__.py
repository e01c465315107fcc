"""Sessions that SpecStory wrote down."""
