"""The HTTP API does what its OpenAPI document says, whatever it is sent."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok

from tests import effort
from tests.conftest import Ctx
from tests.page.served import Served


def test_no_request_is_an_internal_error(served: Served, ctx: Ctx) -> None:
    ctx("add", "--type=fact", "A fact.", "--tag=a:b")
    with served.program() as client:
        token = {"Authorization": client.headers["authorization"]}
        document = client.get("/api/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    found = list(schema.get_all_operations())
    operations = [result.ok() for result in found if isinstance(result, Ok)]
    assert len(operations) == sum(len(methods) for methods in document["paths"].values())
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=effort.times(15),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Case[Any]) -> None:
            answer = case.call(base_url=f"{served.origin}/api/v1", headers=token)
            assert answer.status_code < 500, (case.method, case.path, answer.text)
            if answer.status_code == 200:
                case.validate_response(answer)

        ask()
