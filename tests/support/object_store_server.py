"""An object store on loopback, moto's, behind a proxy that delays, fails, loses replies and repeats requests."""

import http.client
import random
import socket
import threading
import time
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from moto.server import ThreadedMotoServer

HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "server"}
DAMAGES = ("delayed", "failed", "reply lost", "repeated")


class Proxy:
    """Passes requests on to a server, and disturbs a share of them.

    Args:
        port: of the server, on loopback.
        share: of the requests that are disturbed, from 0 to 1.
        seed: of the choice.

    Attributes:
        port: of the proxy.
        requests: how many requests of each method came.
        disturbed: how many were disturbed, by how.
    """

    def __init__(self, port: int, share: float = 0.0, seed: int = 0):
        self.target, self.share, self.random = port, share, random.Random(seed)
        self.requests, self.disturbed = Counter[str](), Counter[str]()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End the proxy."""
        self._server.shutdown()
        self._server.server_close()

    def disturbance(self, method: str) -> str | None:
        """Count a request, and return how it is disturbed."""
        with self._lock:
            self.requests[method] += 1
            if self.random.random() >= self.share:
                return None
            chosen = self.random.choice(DAMAGES)
            self.disturbed[chosen] += 1
            return chosen


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            """Pass a request on."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            disturbance = proxy.disturbance(self.command)
            if disturbance == "delayed":
                time.sleep(0.05)
            if disturbance == "failed":
                self._reply(503, {}, b"")
                return
            for _ in range(2 if disturbance == "repeated" else 1):
                status, headers, content = self._passed_on(body)
            if disturbance == "reply lost":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._reply(status, headers, content)

        def _passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=30)
            try:
                connection.request(self.command, self.path, body, dict(self.headers))
                reply = connection.getresponse()
                return reply.status, dict(reply.getheaders()), reply.read()
            finally:
                connection.close()

        def _reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do_any

        def log_message(self, *parts) -> None:
            """Print nothing."""

    return Handler


class Store:
    """An object store with one bucket, behind a proxy.

    Attributes:
        url: of a folder in the bucket, another one for each store: moto's are one.
        environment: the variables by which a client finds it.
    """

    def __init__(self, share: float = 0.0, seed: int = 0):
        self.url = f"s3://bucket/{uuid.uuid4().hex}"
        self._moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._moto.start()
        _, port = self._moto.get_host_and_port()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", "/bucket")
        assert connection.getresponse().status == 200
        connection.close()
        self.proxy = Proxy(port, share, seed)
        self.environment = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.proxy.port}",
            "AWS_ALLOW_HTTP": "true",
        }

    def close(self) -> None:
        """End the store."""
        self.proxy.close()
        self._moto.stop()
