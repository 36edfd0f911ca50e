"""BundleCrashes: cases of bundle_test.py: publications that are killed, that find no space, or find leftovers of others."""

import fcntl
import shutil
import subprocess
import time

from bundles import Bundles
from harness import check, killed, mounted


class BundleCrashes(Bundles):
    def leftovers(self):
        """What lies where a bundle is made, and is no publication's, stays as it is."""
        victim, left = self.root / "victim", self.root / "left.publishing"
        victim.mkdir()
        (victim / "file").write_text("ostro, process 1")

        def folder(*made):
            left.mkdir()
            for make in made:
                make()

        foreign = [lambda: folder((left / "mine.txt").touch), lambda: folder((left / "new").mkdir), left.touch,
                   lambda: left.symlink_to("victim"), lambda: left.symlink_to("nowhere"),
                   lambda: folder(lambda: (left / "ostro.lock").write_text("mine")),
                   lambda: folder(lambda: (left / "ostro.lock").symlink_to("../victim/file"))]
        for make in foreign:
            make()
            before = subprocess.run(["ls", "-lR", "left.publishing", "victim"], cwd=self.root, capture_output=True).stdout
            self.w.bad("publish", "runs/good", "--out", "left", says=["left.publishing", "is there already", "--out"])
            after = subprocess.run(["ls", "-lR", "left.publishing", "victim"], cwd=self.root, capture_output=True).stdout
            check(before == after and not (self.root / "left").exists(), f"{before}\n{after}")
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        self.root.joinpath("left.importing").mkdir()
        self.root.joinpath("left.importing/mine.txt").touch()
        self.w.bad("import", "--from", "hf", "B", "--out", "left", says=["left.importing", "mine.txt", "--out"])
        # Of another program that is at work, and of one that was killed.
        folder((left / "new").mkdir)
        with open(left / "ostro.lock", "w") as file:
            file.write("ostro, process 1")
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            self.w.bad("publish", "runs/good", "--out", "left", says=["another command makes left", "process 1"])
        for name, to in (("one", "../../victim"), ("two", "nowhere")):
            (left / "new" / name).symlink_to(to)
        self.w.good(*self.options_of_b("left"))
        self.same_as_b("left")
        check((victim / "file").exists() and not left.exists(), "a link was followed, or a folder left")

    def kills(self):
        """Killed at any place, a publication left nothing under its name, or all; the next one needs no help."""
        begin = time.monotonic()
        self.w.good(*self.options_of_b("killed"))
        seconds = time.monotonic() - begin
        shutil.rmtree(self.root / "killed")
        whole = 0
        for point in [*range(1, 6), *[None] * self.kill_times]:
            if point is not None:
                status, out, err = self.w.run(*self.options_of_b("killed"), env={"OSTRO_FAILPOINT": f"new_directory:{point}"})
                check(killed(status), f"new_directory:{point} did not fire: {out}{err}")
            else:
                process = self.w.start(*self.options_of_b("killed"))
                time.sleep(self.rng.uniform(0, seconds))
                process.kill()
                process.communicate()
            if (self.root / "killed").exists():
                whole += 1
                self.same_as_b("killed")
                shutil.rmtree(self.root / "killed")
            self.w.good(*self.options_of_b("killed"))
            self.same_as_b("killed")
            check(not (self.root / "killed.publishing").exists(), "a folder was left")
            shutil.rmtree(self.root / "killed")
        check(whole >= 2, f"{whole} of the kills came after the directory had got its name")

    def full_disk(self):
        size = sum(p.stat().st_size for p in (self.root / "B").rglob("*") if p.is_file()) >> 10
        with mounted(self.root / "full", "-t", "tmpfs", "-o", "size=4k", "tmpfs") as place:
            for part in (4, *(self.rng.randrange(8, size, 4) for _ in range(3))):
                subprocess.run(["mount", "-o", f"remount,size={part}k", place], check=True)
                self.w.bad(*self.options_of_b("full/B"), says=["full/B", "No space left on device"])
                check(not list(place.iterdir()), f"{list(place.iterdir())} was left on a full disk of {part} kB")
            subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
            self.w.good(*self.options_of_b("full/B"))
            self.same_as_b("full/B")
