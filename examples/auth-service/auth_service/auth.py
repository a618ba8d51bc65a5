"""Login for the service. Grown in a hurry: module-level state and an unsalted digest."""

import hashlib

USERS = {}


def add_user(name, password):
    if name in USERS:
        raise ValueError("user exists: " + name)
    USERS[name] = hashlib.md5(password.encode("utf-8")).hexdigest()


def login(name, password):
    return USERS.get(name) == hashlib.md5(password.encode("utf-8")).hexdigest()
