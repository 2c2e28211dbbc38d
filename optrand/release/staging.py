"""Second pass over a table: the randomizers and the noisy table, written under names that nobody sees yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from optrand.release.batch import Draw
from optrand.release.charged import ChargedRelease
from optrand.release.circumstances import RandomizerFile, TableFile
from optrand.release.column_groups import ColumnGroups
from optrand.release.group_plan import GroupPlan
from optrand.release.paths import record_path
from optrand.release.plan import Plan
from optrand.release.publication import Publication
from optrand.release.record import sha256_of
from optrand.release.scan import Pass, Scan
from optrand.release.streams.records import CsvFormat
from optrand.release.table_options import open_sink

__all__ = ["Drawn", "Staging"]


@dataclass(frozen=True)
class Drawn:
    """Files of a release that are staged, and the place of the record that is to name them."""

    table: TableFile
    randomizers: tuple[RandomizerFile, ...]
    record: Path


@dataclass(frozen=True)
class Staging:
    """Hidden folder of a publication, in which a release is written.

    Attributes
    ----------
    publication : Publication
    beside : Path
        Final name of the randomizer, or of the folder of those of groups.
    layout : CsvFormat, optional
        Of the released table, where it is CSV.
    """

    publication: Publication
    beside: Path
    layout: CsvFormat | None

    def drawn(self, plan: Plan | GroupPlan, rows: Pass, scan: Scan, charged: ChargedRelease) -> Drawn:
        """Save what draws the labels, keep its digest in the account, and only then draw them."""
        output = self.publication.target
        beside, record = (self.publication.stage(path) for path in (self.beside, record_path(output)))
        if isinstance(plan, Plan):
            plan.save(beside)
            files: tuple[RandomizerFile, ...] = (RandomizerFile(self.beside.name, sha256_of(beside)),)
            draws = charged.draws({"": (plan.randomizer, files[0].sha256)})
        else:
            files, draws = self._groups(plan, rows, beside, charged)
        staged = self.publication.stage(output, like=rows.source.files[0])
        sink = open_sink(rows.source, rows.randomizer, output, staged, layout=self.layout)
        rows.replace(scan, draws, sink)
        return Drawn(TableFile(output.name, self.publication.digest(output), scan.rows), files, record)

    def _groups(
        self, plan: GroupPlan, rows: Pass, folder: Path, charged: ChargedRelease
    ) -> tuple[tuple[RandomizerFile, ...], list[Draw]]:
        """A file for each pool of groups; the file and the draws of each group."""
        folder.mkdir(mode=0o700)
        paths = [folder / f"{pool}.json" for pool in range(len(plan.mechanisms))]
        for mechanism, path in zip(plan.mechanisms, paths, strict=True):
            mechanism.save(path)
        digests = [sha256_of(path) for path in paths]
        drawing = {str(i): pair for i, pair in enumerate(zip(plan.mechanisms, digests, strict=True))}
        of_pools = charged.draws(drawing)
        grouping, pools = rows.randomizer.grouping, plan.pools.pool.tolist()
        named: tuple[str, ...] = grouping.names if isinstance(grouping, ColumnGroups) else ()
        return tuple(
            RandomizerFile(f"{self.beside.name}/{paths[pool].name}", digests[pool], group)
            for group, pool in zip(named, pools, strict=True)
        ), [of_pools[pool] for pool in pools]
