"""A scripted stand-in for a coding agent.

It does what an agent does, with the thinking left out: it registers on the bus, reads files (its own workspace's and, over the
bus, those another task submitted), edits them, runs the tests, reports progress. `--file F --task T` as an agent would get them;
which script it plays follows from BULKHEAD_TASK. SCRIPTED_AGENT_FAIL=<task id> makes that one fail half-way.
"""

import argparse
import ast
import os
import pathlib
import subprocess
import sys
import time

AUTH_SERVICE = '''"""Login for the service."""

import hashlib
import hmac
import os


class AuthService:
    """Keeps users and checks their passwords, which are stored as salted scrypt hashes."""

    def __init__(self):
        self._users = {}

    def add_user(self, name, password):
        """Adds a user; ValueError if the name is taken."""
        if name in self._users:
            raise ValueError("user exists: " + name)
        salt = os.urandom(16)
        self._users[name] = (salt, self._digest(password, salt))

    def login(self, name, password):
        """True if the password is the user's; the comparison takes the same time either way."""
        salt, expected = self._users.get(name, (b"", b""))
        return hmac.compare_digest(self._digest(password, salt), expected)

    @staticmethod
    def _digest(password, salt):
        return hashlib.scrypt(password.encode("utf-8"), salt=salt, n=2**12, r=8, p=1)


default_service = AuthService()
add_user = default_service.add_user
login = default_service.login
'''

AUTH_TESTS = '''import unittest

from auth_service.auth import AuthService


class AuthServiceTest(unittest.TestCase):
    def setUp(self):
        self.service = AuthService()
        self.service.add_user("zoë", "pässword")

    def test_login_with_the_right_password(self):
        self.assertTrue(self.service.login("zoë", "pässword"))

    def test_login_with_a_wrong_password(self):
        self.assertFalse(self.service.login("zoë", "password"))

    def test_unknown_user(self):
        self.assertFalse(self.service.login("nobody", ""))

    def test_a_name_is_taken_once(self):
        with self.assertRaises(ValueError):
            self.service.add_user("zoë", "again")

    def test_equal_passwords_are_stored_differently(self):
        self.service.add_user("ada", "pässword")
        self.assertNotEqual(self.service._users["ada"], self.service._users["zoë"])


if __name__ == "__main__":
    unittest.main()
'''


def bus(*words):
    """Calls the supervisor over the door; the answer is on standard output."""
    return subprocess.run(["bulkhead-bus", *words], check=True, stdout=subprocess.PIPE).stdout


def say(percent, message):
    print(message, flush=True)
    bus("progress", str(percent))
    time.sleep(0.3)


def run_tests():
    done = subprocess.run([sys.executable, "-m", "unittest", "-v"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.flush()
    if done.returncode != 0:
        bus("error", "the tests fail", "--fatal")
        sys.exit(1)


def auth_refactor(target):
    say(10, "reading " + str(target))
    target.read_text(encoding="utf-8")
    say(40, "moving the login code into AuthService")
    target.write_text(AUTH_SERVICE, encoding="utf-8")
    if os.environ.get("SCRIPTED_AGENT_FAIL") == "auth_refactor":
        print("cannot go on: asked to fail", file=sys.stderr)
        sys.exit(1)
    say(80, "running the tests")
    run_tests()


def test_auth(target):
    mine = pathlib.Path("auth_service/auth.py").read_bytes()
    submitted = bus("get-file", "auth_refactor", "auth_service/auth.py")
    say(20, "comparing the workspace with what auth_refactor submitted")
    if b"class AuthService" not in mine or mine != submitted:
        bus("error", "AuthService is not here as auth_refactor left it", "--fatal")
        sys.exit(1)
    say(50, "writing " + str(target))
    target.write_text(AUTH_TESTS, encoding="utf-8")
    say(80, "running the tests")
    run_tests()
    bus("put-artifact", str(target), "--name", "test_auth.py")


def docs_update(target):
    source = bus("get-file", "auth_refactor", "auth_service/auth.py").decode("utf-8")
    say(30, "reading the docstrings")
    lines = ["# Authentication", ""]
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            lines += [f"## `{node.name}`", "", ast.get_docstring(node) or "", ""]
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    arguments = ", ".join(a.arg for a in method.args.args if a.arg != "self")
                    lines.append(f"- `{method.name}({arguments})`: {ast.get_docstring(method)}")
    tests = pathlib.Path("tests/test_auth.py").read_text(encoding="utf-8").count("def test_")
    lines += ["", f"It is covered by {tests} tests in `tests/test_auth.py`.", ""]
    say(70, "writing " + str(target))
    target.write_text("\n".join(lines), encoding="utf-8")


SCRIPTS = {"auth_refactor": auth_refactor, "test_auth": test_auth, "docs_update": docs_update}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True, type=pathlib.Path)
    parser.add_argument("--task", required=True)
    options = parser.parse_args()
    task = os.environ["BULKHEAD_TASK"]
    bus("register", "scripted-agent", "1.0")
    print(f"{task}: {options.task}", flush=True)
    bus("status", "working", options.task)
    SCRIPTS[task](options.file)
    bus("status", "done")


if __name__ == "__main__":
    main()
