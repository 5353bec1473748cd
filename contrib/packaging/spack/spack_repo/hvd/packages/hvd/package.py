# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Hvd(MesonPackage):
    """Distributed training of deep-learning models on Slurm clusters, with Horovod's interface for
    PyTorch, TensorFlow, Keras, MXNet and JAX. One installation serves all versions of Python and
    of the frameworks."""

    # The checkout to which this recipe belongs.
    git = pathlib.Path(__file__).resolve().parents[7].as_uri()
    homepage = git

    license("Apache-2.0")

    version("main", branch="main")

    # Slurm loads a plugin only if it was built with the headers of the Slurm that runs, which is
    # the site's own: the recipe does not depend on a Slurm that Spack builds.
    variant(
        "slurm_include",
        default="none",
        description="Directory of the site's slurm/spank.h; none: no plugin for srun --hvd",
    )
    variant("ucx", default=True, description="InfiniBand; without it, TCP between nodes")
    variant("pmix", default=True, description="Ranks started by mpirun and srun --mpi=pmix")
    variant("cuda", default=False, description="Kernels for GPU tensors, compiled by nvcc")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("python@3.8:", type="build")
    depends_on("cuda@11:13", type="build", when="+cuda")
    depends_on("hwloc@2.1:")
    depends_on("libsodium@1.0.14:")
    depends_on("libyaml")
    depends_on("pmix@3.2:", when="+pmix")
    depends_on("ucx@1.12:", when="+ucx")

    conflicts("%gcc@:7", msg="hvd needs gcc 8 or newer")
    conflicts("%clang@:8", msg="hvd needs clang 9 or newer")

    def meson_args(self):
        args = ["-Dman=disabled", "-Dtests=false"]
        for feature in ("ucx", "pmix", "cuda"):
            state = "enabled" if self.spec.satisfies(f"+{feature}") else "disabled"
            args.append(f"-D{feature}={state}")
        include = self.spec.variants["slurm_include"].value
        if include == "none":
            return args + ["-Dslurm=disabled"]
        if not os.path.isfile(os.path.join(include, "slurm", "spank.h")):
            raise InstallError(
                f"hvd: no slurm/spank.h in slurm_include={include}: install the headers of "
                "the Slurm that runs here, and name the directory above its slurm/spank.h"
            )
        return args + ["-Dslurm=enabled", f"-Dc_args=-I{include}"]

    def setup_run_environment(self, env):
        # After the user's own directories, as share/hvd/env.sh does.
        env.append_path("PYTHONPATH", self.prefix.lib.hvd.python)
