"""HTTP/3 by a client that is not ours: h3_smoke.py http://127.0.0.1:8080 https://localhost:8443 CA_FILE

The same greedy request over QUIC and over HTTP/1.1 must get the same answer.
"""

import json
import sys

import niquests


def events(response):
    lines = [line for line in response.iter_lines(decode_unicode=True) if line]
    assert lines[-1] == "data: [DONE]", lines[-1:]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def ask(session, base, http_version, **tls):
    request = {"messages": [{"role": "user", "content": "Name three colours."}], "temperature": 0}
    [card] = session.get(f"{base}/v1/models", timeout=30, **tls).json()["data"]
    request |= {"model": card["id"], "max_tokens": 32, "stream": True}
    response = session.post(
        f"{base}/v1/chat/completions", json=request, stream=True, timeout=60, **tls
    )
    assert response.status_code == 200, response.text
    assert response.http_version == http_version, response.http_version
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events(response))


def main():
    plain, secure, ca = sys.argv[1:]
    with niquests.Session(disable_http1=True, disable_http2=True) as over_quic:
        # Named for each request: an environment's own list of authorities would win over the session's.
        by_h3 = ask(over_quic, secure, 30, verify=ca)
    with niquests.Session(disable_http2=True, disable_http3=True) as over_tcp:
        by_h1 = ask(over_tcp, plain, 11)
    assert by_h3 and by_h3 == by_h1, (by_h3, by_h1)
    print(f"niquests {niquests.__version__}: over HTTP/3 and HTTP/1.1 alike: {by_h3!r}")


main()
