"""Spark on this machine, in one process or as a cluster of two workers, or the reason why it cannot be started."""

import importlib.util
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

MISSING = [
    name
    for name, there in (
        ("java (`make system-deps` installs it)", shutil.which("java")),
        ("pyspark (`make spark` installs it)", importlib.util.find_spec("pyspark")),
    )
    if not there
]

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of virtual machines that live for seconds."""

OPTIONS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.eventLog.compress": "false",
    "spark.eventLog.enabled": "true",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.executor.memory": "512m",
    "spark.io.encryption.enabled": "true",
    "spark.sql.files.maxPartitionBytes": "20000",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def cluster(folder, master="local-cluster[2,1,512]"):
    """Session of a cluster whose logs, events and temporary files are in a folder."""
    import pyspark
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    home = folder / "home"
    for name in ("home", "events", "local"):
        (folder / name).mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        # Workers make their own folder in it.
        if path.name != "work":
            (home / path.name).symlink_to(path)
    changed = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{JAVA}' pyspark-shell",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        builder = SparkSession.builder.master(master).appName("optrand")
        for name, value in {**OPTIONS, "spark.eventLog.dir": (folder / "events").as_uri()}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            session.sparkContext.setLogLevel("OFF")
            yield session
        finally:
            session.stop()
            SparkContext._gateway.shutdown()
            SparkContext._gateway.proc.stdin.close()
            SparkContext._gateway.proc.wait()
            SparkContext._gateway = SparkContext._jvm = None
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
