"""The HTTP face of the service: POST /login with a JSON body."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from auth_service import auth


def handle_login(body):
    """Answers (status, reply) for the JSON text of a login request."""
    try:
        request = json.loads(body)
        is_valid = auth.login(request["name"], request["password"])
    except (ValueError, KeyError, TypeError):
        return 400, {"error": "send a JSON object with name and password"}
    return (200, {"ok": True}) if is_valid else (401, {"ok": False})


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        status, reply = handle_login(self.rfile.read(length))
        payload = json.dumps(reply).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(payload)


def main():
    auth.add_user("ada", "lovelace")
    HTTPServer(("127.0.0.1", 8080), Handler).serve_forever()


if __name__ == "__main__":
    main()
