"""What every target of `ctx sync` does."""

import pytest

from ctx.errors import CtxError
from ctx.sync.batch_files import BatchFile
from ctx.sync.batch_target import BatchTarget

ONE, TWO = BatchFile("1" * 64, b"one"), BatchFile("2" * 64, b"two" * 1_000)


class BatchTargetContract:
    """A subclass has two fixtures, `target` and `elsewhere`: two machines that share a target."""

    def test_a_new_target_is_empty(self, target: BatchTarget) -> None:
        assert target.listing() == (frozenset(), ())

    def test_batches_are_seen_by_the_other_machine(
        self, target: BatchTarget, elsewhere: BatchTarget
    ) -> None:
        target.publish([ONE, TWO])
        assert elsewhere.listing().batches == {ONE.name, TWO.name}
        assert elsewhere.read(ONE.name) == ONE.data
        assert elsewhere.read(TWO.name) == TWO.data

    def test_both_machines_add_batches(self, target: BatchTarget, elsewhere: BatchTarget) -> None:
        target.publish([ONE])
        elsewhere.publish([TWO])
        assert target.listing().batches == elsewhere.listing().batches == {ONE.name, TWO.name}

    def test_a_batch_is_replaced_by_another(
        self, target: BatchTarget, elsewhere: BatchTarget
    ) -> None:
        target.publish([ONE])
        elsewhere.listing()
        elsewhere.publish([TWO], [ONE.name])
        assert target.listing().batches == {TWO.name}

    def test_removing_what_is_gone_does_nothing(self, target: BatchTarget) -> None:
        target.publish([ONE], [TWO.name])
        assert target.listing().batches == {ONE.name}

    def test_a_damaged_batch_is_written_again(
        self, target: BatchTarget, elsewhere: BatchTarget
    ) -> None:
        target.publish([ONE._replace(data=b"damaged")])
        target.publish([ONE])
        elsewhere.listing()
        assert elsewhere.read(ONE.name) == ONE.data

    def test_nothing_is_lost_without_local_copies(self, target: BatchTarget) -> None:
        target.publish([ONE])
        target.purge()
        assert target.listing().batches == {ONE.name}
        assert target.read(ONE.name) == ONE.data

    def test_a_batch_that_does_not_exist_is_an_error(self, target: BatchTarget) -> None:
        target.listing()
        with pytest.raises(CtxError):
            target.read(TWO.name)
