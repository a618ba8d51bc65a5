"""A small login service, the subject of bulkhead's demo."""
