"""The `openai` package, unchanged, against a running Innkeeper: openai_smoke.py http://127.0.0.1:8080/v1"""

import sys

import openai

SUM_UP = [{"role": "user", "content": "In one sentence: why is the sky blue?"}]


def greedy(client, model, **more):
    return client.chat.completions.create(
        model=model, messages=SUM_UP, temperature=0, max_tokens=40, **more
    )


def chat(client, model):
    answer = greedy(client, model)
    text, usage = answer.choices[0].message.content, answer.usage
    assert len(text.split()) >= 5, text
    assert answer.choices[0].finish_reason in ("stop", "length"), answer
    assert usage.prompt_tokens > 10 and 5 <= usage.completion_tokens <= 40, usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    return text, usage


def streaming(client, model, text, usage):
    pieces, ends, used = [], [], None
    stream = greedy(client, model, stream=True, stream_options={"include_usage": True})
    for chunk in stream:
        used = chunk.usage or used
        for choice in chunk.choices:
            pieces.append(choice.delta.content or "")
            ends.extend(filter(None, [choice.finish_reason]))
    assert len(pieces) > 5, "it came in one piece"
    assert "".join(pieces) == text, ("".join(pieces), text)
    assert len(ends) == 1, ends
    assert used.completion_tokens == usage.completion_tokens, (used, usage)


def four_answers(client, model):
    def ask(seed):
        answer = client.chat.completions.create(
            model=model, messages=SUM_UP, temperature=1, seed=seed, n=4, max_tokens=24
        )
        assert [choice.index for choice in answer.choices] == [0, 1, 2, 3], answer
        return [choice.message.content for choice in answer.choices]

    first = ask(7)
    assert len(set(first)) == 4, first
    assert ask(7) == first, "the same seed gives the same answers"
    assert ask(8) != first, "another seed gives others"


def stop_string(client, model, text):
    word = text.split()[4]
    answer = greedy(client, model, stop=[word])
    assert answer.choices[0].message.content == text[: text.index(word)], (answer, text)
    assert answer.choices[0].finish_reason == "stop", answer


def logprobs(client, model, text):
    answer = greedy(client, model, logprobs=True, top_logprobs=3)
    tokens = answer.choices[0].logprobs.content
    assert len(tokens) == answer.usage.completion_tokens, answer.usage
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == text, tokens
    for token in tokens:
        assert len(token.top_logprobs) == 3, token
        assert token.logprob == token.top_logprobs[0].logprob <= 0, token


def errors(client, model):
    def refused(kind, status, **wrong):
        request = {"model": model, "messages": SUM_UP, "max_tokens": 8} | wrong
        try:
            client.chat.completions.create(**request)
        except kind as error:
            assert error.status_code == status, error
            return error
        raise AssertionError(f"{wrong} was served")

    assert refused(openai.NotFoundError, 404, model="no-such-model").code == "model_not_found"
    assert refused(openai.BadRequestError, 400, temperature=3).param == "temperature"
    assert refused(openai.BadRequestError, 400, extra_body={"colour": "red"}).param == "colour"
    long = [{"role": "user", "content": "word " * 9000}]
    assert refused(openai.BadRequestError, 400, messages=long).code == "context_length_exceeded"
    late = {"timeout": 0.2, "ignore_eos": True, "max_tokens": 4000}
    expired = refused(openai.InternalServerError, 504, extra_body=late)
    assert expired.code == "deadline_exceeded" and expired.body["phase"], expired.body


def main():
    client = openai.OpenAI(base_url=sys.argv[1], api_key="none is asked for", max_retries=0, timeout=60)
    [model] = [card.id for card in client.models.list()]
    text, usage = chat(client, model)
    streaming(client, model, text, usage)
    four_answers(client, model)
    stop_string(client, model, text)
    logprobs(client, model, text)
    errors(client, model)
    print(f"openai {openai.__version__}: chat, streaming, n, seed, stop, logprobs, errors: as it should be")
    print(f"  {model}: {text!r}")


main()
