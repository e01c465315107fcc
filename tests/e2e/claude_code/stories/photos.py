"""A user with long prompts and typing errors who copies photos to a disk; in shell."""

from tests.e2e.claude_code.replay.scenario import Turn, bash, edit, read, write
from tests.e2e.claude_code.stories.story import ExpectedLine, Story

CHECKS = """#!/bin/sh
# Runs every check in this folder, each with an empty card and an empty disk.
cd "$(dirname "$0")/.." || exit 1
failed=0
for check in tests/check_*.sh; do
  work=$(mktemp -d)
  mkdir "$work/card" "$work/disk"
  if CARD="$work/card" DISK="$work/disk" sh "$check"; then
    echo "ok $check"
  else
    echo "FAILED $check"
    failed=1
  fi
  rm -rf "$work"
done
exit "$failed"
"""
COPY = """#!/bin/sh
# Copies what is on the card to the disk. usage: copy.sh CARD DISK
card=$1 disk=$2
for photo in "$card"/*; do
  [ -e "$photo" ] || continue
  cp "$photo" "$disk/"
done
"""
COPY_CHECK = """echo one > "$CARD/summer holiday.jpg"
sh copy.sh "$CARD" "$DISK"
[ -e "$DISK/summer holiday.jpg" ] && [ -e "$CARD/summer holiday.jpg" ]
"""
BY_MTIME = (
    '  month=$(date -r "$photo" +%Y-%m)\n  mkdir -p "$disk/$month"\n  cp "$photo" "$disk/$month/"\n'
)
BY_NAME = """  name=${photo##*/}
  digits=${name#IMG_}
  month=$(echo "$digits" | cut -c1-4)-$(echo "$digits" | cut -c5-6)
  mkdir -p "$disk/$month"
  cp "$photo" "$disk/$month/"
"""
MONTH_CHECK = """echo one > "$CARD/IMG_20240503_101500.jpg"
sh copy.sh "$CARD" "$DISK"
[ -e "$DISK/2024-05/IMG_20240503_101500.jpg" ]
"""
BURST_CHECK = """mkdir -p "$DISK/2024-05"
echo aaa > "$DISK/2024-05/IMG_20240503_101500.jpg"
echo bbb > "$CARD/IMG_20240503_101500.jpg"
sh copy.sh "$CARD" "$DISK"
[ "$(cat "$DISK"/2024-05/* | sort | tr -d '\\n')" = aaabbb ]
"""
COPIES = '  cp "$photo" "$disk/$month/"\n'
BY_SIZE = """  target="$disk/$month/$name"
  if [ -e "$target" ] && [ "$(wc -c < "$target")" = "$(wc -c < "$photo")" ]; then
    continue
  fi
  cp "$photo" "$target"
"""
BY_SUM = """  target="$disk/$month/$name"
  if [ -e "$target" ]; then
    sum=$(cksum < "$photo" | cut -d' ' -f1)
    [ "$sum" = "$(cksum < "$target" | cut -d' ' -f1)" ] && continue
    target="$disk/$month/$sum-$name"
  fi
  cp "$photo" "$target"
"""
PLAN = """## Plan

1. Mirror the card with `rsync -a --delete card/ disk/`
2. Run it from cron every hour
3. Mail the log to yourself
"""
TEST = "sh tests/run.sh"

SESSIONS = (
    (
        Turn(
            "hey! i'd like a script that copies the photos from my camera card to the disk in the"
            " hallway (its an old nas). a few things before you start: the nas only has busybox sh,"
            " so no bash stuff please. allways quote the paths, my folders have spaces in them :("
            " and never ever delete anything on the card, i format it in the camera myself",
            (
                write("copy.sh", COPY),
                write("tests/check_copy.sh", COPY_CHECK),
                bash("./tests/run.sh"),
                bash(TEST, "The script is not executable here, so I call it through sh."),
                ("copy.sh copies the card to the disk, and the check passes."),
            ),
        ),
    ),
    (
        Turn(
            "could you sort them into folders by month? thatd be so nice",
            (
                edit("copy.sh", '  cp "$photo" "$disk/"\n', BY_MTIME),
                "copy.sh now sorts by the modification time of a file, into folders like 2024-05.",
            ),
        ),
        Turn(
            "hmm no, not the modification time, thats just when the card was repaired. take the"
            " date from the file name (IMG_20240503_101500.jpg)",
            (
                write("tests/check_month.sh", MONTH_CHECK),
                bash(TEST),
                edit("copy.sh", BY_MTIME, BY_NAME),
                bash("rm tests/check_copy.sh"),
                bash(TEST),
                ("The month now comes from the file name, and the check for it passes."),
            ),
        ),
    ),
    (
        Turn(
            "my friend tom sent me this, what do you think?\n\n" + PLAN,
            (
                (
                    "Tom's plan works: rsync keeps the disk equal to the card, and cron saves you"
                    " from thinking about it. I can set it up like that."
                ),
            ),
        ),
        Turn(
            "ok i slept on it and nah, lets not do toms plan. with --delete the disk would loose"
            " the photos as soon as i format the card!! we stay with our own copy.sh, and i start"
            " it by hand, no cron",
            (
                (
                    "Understood: no rsync mirror and no cron. copy.sh stays the way to copy, and"
                    " you start it by hand."
                ),
            ),
        ),
    ),
    (
        Turn(
            "it copys everything again every time, takes ages. can it skip what is allready there?",
            (
                write("tests/check_burst.sh", BURST_CHECK),
                edit("copy.sh", COPIES, BY_SIZE, "I skip files with the same name and size."),
                bash(TEST),
                read("copy.sh"),
                edit("copy.sh", BY_SIZE, BY_SUM),
                bash(TEST),
                (
                    "copy.sh skips a photo if the file on the disk has the same checksum (cksum)."
                    " Comparing name and size does not work: two different photos had the same."
                ),
            ),
        ),
    ),
    (
        Turn(
            "can you make it print how many it copied at the end?",
            (
                edit(
                    "copy.sh",
                    "done\n",
                    'done\nif [[ -n "$count" ]]; then echo "$count copied"; fi\n',
                ),
                "copy.sh prints the number of copied photos at the end.",
            ),
        ),
        Turn(
            "eeh theres a [[ in there, that doesnt run on the nas. remember, its busybox sh, no"
            " bash stuff!",
            (
                edit(
                    "copy.sh",
                    'if [[ -n "$count" ]]; then echo "$count copied"; fi\n',
                    'echo "${count:-0} copied"\n',
                ),
                edit(
                    "copy.sh",
                    '  cp "$photo" "$target"\n',
                    '  cp "$photo" "$target"\n  count=$((${count:-0} + 1))\n',
                ),
                bash(TEST),
                "It is plain sh again: the count is printed with echo, and the checks pass.",
            ),
        ),
    ),
    (
        Turn(
            "what about the raw files, the .CR3 ones? should they go in the same folder or an extra"
            " one?",
            (
                read("copy.sh"),
                (
                    "Both work. In the same folder they stay beside their jpg; in an extra folder"
                    " your photo viewer does not load them. Which one do you prefer?"
                ),
            ),
        ),
        Turn(
            "good question, i have to ask lena, shes the one who edits the raws. leave it as it is"
            " till then",
            (
                (
                    "I leave it: .CR3 files are copied into the folder of the month as before."
                    " Open: whether they get a folder of their own, which Lena has to say."
                ),
            ),
        ),
    ),
    (
        Turn(
            "oh and if the disk isnt there it should just say so and stop, yesterday it copied"
            " everything into an empty mount point lol",
            (
                edit(
                    "copy.sh",
                    "card=$1 disk=$2\n",
                    'card=$1 disk=$2\n[ -d "$disk/." ] || { echo "no disk: $disk" >&2; exit 1; }\n',
                ),
                bash(TEST),
                (
                    "copy.sh stops with `no disk` if the folder of the disk is missing. It does not"
                    " notice an empty mount point yet.\n\nNext: a marker file `.photos` on the"
                    " disk, which copy.sh looks for."
                ),
            ),
        ),
    ),
)

PHOTOS = Story(
    "photos",
    {"README.md": "Photos from the card to the disk.\n", "tests/run.sh": CHECKS},
    SESSIONS,
    "hi again! can you add a --dry-run to copy.sh that only shows what it would copy, raw files"
    " too?",
    (
        ExpectedLine("Only busybox sh, nothing of bash.", ("busybox", "no bash"), is_rule=True),
        ExpectedLine("Paths are always quoted.", ("quote", "paths"), is_rule=True),
        ExpectedLine("Nothing on the card is deleted.", ("never", "delete", "card"), is_rule=True),
        ExpectedLine("The month comes from the file name.", ("file name", "date|month")),
        ExpectedLine(
            "It does not come from the modification time.",
            ("modification time", r"\b(?:no|not|isn't|instead)\b"),
        ),
        ExpectedLine(
            "Tom's plan was rejected: --delete would lose photos.",
            ("tom|rsync|--delete", r"\b(?:no|not|nah)\b"),
        ),
        ExpectedLine("No cron, it is started by hand.", ("by hand", "no cron")),
        ExpectedLine("Photos are compared by checksum.", ("checksum|cksum",)),
        ExpectedLine("Name and size do not suffice.", ("name and size", "does not work|same name")),
        ExpectedLine("`sh tests/run.sh` runs the checks.", ("`sh tests/run.sh`",)),
        ExpectedLine("`./tests/run.sh` does not run.", (r"`\./tests/run\.sh`", "fail|denied")),
        ExpectedLine("A folder of its own for raw files? Lena has to say.", ("lena", "raw|CR3")),
        ExpectedLine("It stops without a disk.", ("no disk",)),
        ExpectedLine("Next: a marker file on the disk.", (r"\.photos",)),
    ),
    {
        "Photos are sorted by modification time.": r"sorts by the modification",
        "The card is mirrored.": r"tom's plan works|rsync keeps|mirror the card|set it up",
        "cron runs it.": r"run it from cron|cron saves",
        "Name and size are compared.": r"skip files with the same name and size",
        "[[ is used.": r"if \[\[",
        "The checks fail.": r"still fail|FAILED tests/",
        "Raw files have a folder of their own.": r"raw files go (?:in)?to (?:an extra|their own)",
    },
)
