"""Fetches and builds the clients, each by its language's ordinary means, into `.work/`, which git ignores.

What is missing is a Skip: a client that cannot be fetched here is reported as skipped, never as passed.
"""

import hashlib
import json
import os
import shutil
import sys

from harness.process import run
from harness.report import Failure, Skip

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(HERE, ".work")

FETCH_PATIENCE = 600


def source(*path):
    return os.path.join(HERE, *path)


def _need(program):
    if shutil.which(program) is None:
        raise Skip(f"{program} is not installed")


def _made_from(*paths):
    """A hash of the files that something is made from, so that it is made again when they change."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as file:
            digest.update(path.encode() + b"\0" + file.read())
    return digest.hexdigest()


def _make(name, inputs, commands):
    """Runs `commands` (called with the directory) unless `.work/name` was made from the same inputs already."""
    directory = os.path.join(WORK, name)
    stamp = os.path.join(directory, "made-from")
    wanted = _made_from(*inputs)
    if os.path.exists(stamp):
        with open(stamp) as file:
            if file.read() == wanted:
                return directory
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    commands(directory)
    with open(stamp, "w") as file:
        file.write(wanted)
    return directory


def _fetch(command, directory, env=None):
    code, out, err = run(command, FETCH_PATIENCE, directory, env)
    if code != 0:
        raise Skip(f"`{' '.join(command)}` ended with {code}: {(out + err).strip()[-600:]}")


def _compile(command, directory, env=None):
    code, out, err = run(command, FETCH_PATIENCE, directory, env)
    if code != 0:
        raise Failure(f"`{' '.join(command)}` ended with {code}: {(out + err).strip()[-3000:]}")


def java():
    """The class path with Kafka's artefacts and our own programs."""
    for program in ("java", "javac", "mvn"):
        _need(program)
    pom = source("java", "pom.xml")

    def fetch(directory):
        shutil.copy(pom, directory)
        _fetch(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory}/libs"], directory)

    libs = os.path.join(_make("java-libs", [pom], fetch), "libs")
    programs = [source("java", name) for name in sorted(os.listdir(source("java"))) if name.endswith(".java")]

    def compile_programs(directory):
        _compile(["javac", "-Xlint:all", "-Werror", "-cp", f"{libs}/*", "-d", directory, *programs], directory)

    classes = _make("java-classes", [*programs, pom], compile_programs)
    return f"{source('java')}:{classes}:{libs}/*"


def python():
    """The interpreter of a virtual environment with the Python clients."""
    requirements = source("python", "requirements.txt")

    def fetch(directory):
        _fetch([sys.executable, "-m", "venv", f"{directory}/venv"], directory)
        _fetch([f"{directory}/venv/bin/pip", "-q", "install", "--disable-pip-version-check", "-r", requirements], directory)

    return os.path.join(_make("python", [requirements], fetch), "venv", "bin", "python")


def node():
    """The directory from which `require("kafkajs")` works."""
    for program in ("node", "npm"):
        _need(program)
    package = source("node", "package.json")

    def fetch(directory):
        shutil.copy(package, directory)
        _fetch(["npm", "install", "--silent", "--no-package-lock", "--no-audit", "--no-fund"], directory)

    return _make("node", [package], fetch)


def go(program):
    """The binary of the Go program in `go/<program>`."""
    _need("go")
    inputs = [source("go", name) for name in ("go.mod", "go.sum")]
    inputs += [source("go", program, name) for name in os.listdir(source("go", program))]

    def build(directory):
        _fetch(["go", "mod", "download"], source("go"))
        _compile(["go", "build", "-o", f"{directory}/{program}", f"./{program}"], source("go"))

    return os.path.join(_make(f"go-{program}", inputs, build), program)


def kcat():
    _need("kcat")
    return "kcat"


def kaas(release):
    """Builds the broker and says where it is."""
    _need("cargo")
    command = ["cargo", "build", "--package", "kaas", "--message-format", "json-render-diagnostics"]
    code, out, err = run(command + (["--release"] if release else []), 1800, ROOT)
    if code != 0:
        raise Failure(f"kaas does not build\n{err[-3000:]}")
    for line in out.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["target"]["name"] == "kaas":
            return message["executable"]
    raise Failure("cargo named no executable called kaas")
