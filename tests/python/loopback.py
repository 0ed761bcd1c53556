"""A small HTTP server for the calls that need one. It prints its address and echoes what it is sent."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer


class Echo(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://192.0.2.1/")
            self.end_headers()
            return
        self.send_response(404 if self.path == "/missing" else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"method": self.command, "path": self.path, "body": body}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Echo)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
