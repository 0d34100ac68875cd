"""A README as a tutorial."""

from __future__ import annotations

from pathlib import Path

from mngr.tutorial.blocks import read_tutorial
from mngr.tutorial.markdown import parse_markdown

PAGE = """\
# jc

```python
print("no shell")
```

## Usage

```bash
$ dig example.com | jc --dig

$ true
```

~~~ sh title="x"
# a comment of a shell is no heading
echo one
~~~

  ```console
  $ echo two
  two
  ```

```sh
# to be written
```

````sh
echo '```'
````
"""


def test_shell_code_is_a_block_and_the_heading_its_section() -> None:
    tutorial = parse_markdown(PAGE, "README.md")
    assert [(block.command, block.section, block.line, block.end) for block in tutorial.blocks] == [
        ("dig example.com | jc --dig", "Usage", 10, 12),
        ("echo one", "Usage", 16, 17),
        ("echo two", "Usage", 21, 22),
        ("echo '```'", "Usage", 30, 30),
    ]
    assert tutorial.blocks[2].text == "$ echo two\ntwo"
    assert [blank.text for blank in tutorial.blanks] == ["# to be written"]
    assert tutorial.problems == []


def test_a_fence_without_an_end_is_told() -> None:
    [problem] = parse_markdown("a\n\n```sh\necho x\n", "README.md").problems
    assert (problem.file, problem.line) == ("README.md", 3)


def test_the_name_of_the_file_decides(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("text\n\n```sh\necho x\n```\n")
    assert [block.text for block in read_tutorial(str(tmp_path / "README.md")).blocks] == ["echo x"]
