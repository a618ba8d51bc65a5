import unittest

from auth_service import app, auth


class LoginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        auth.add_user("grace", "hopper")

    def test_accepts_the_right_password(self):
        self.assertEqual(app.handle_login('{"name": "grace", "password": "hopper"}')[0], 200)

    def test_refuses_a_wrong_password(self):
        self.assertEqual(app.handle_login('{"name": "grace", "password": "x"}')[0], 401)

    def test_refuses_bad_json(self):
        self.assertEqual(app.handle_login("{")[0], 400)


if __name__ == "__main__":
    unittest.main()
