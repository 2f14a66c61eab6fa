"""Parts of the module path that need no process of their own."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from cuda_sandbox.protocol import Op, Reply, Request
from fitness import languages
from fitness.evaluation import Demand, Execution
from fitness.module import libraries, linked, written
from fitness.module.orders import owing
from fitness.module.runner.evidence import Operators
from fitness.module.runner.orders import Orders, Refused, Spec, filled
from fitness.module.runner.outputs import Outputs, wipe
from fitness.module.runner.owed import owed
from fitness.module.runner.watch import Originals, Watch, program_of
from fitness.module.runner.weights import PARAMETER, place
from fitness.task import load

CPU = torch.device("cpu")


def spec(name, *shape, role=PARAMETER):
    return Spec(name, role, "float32", shape)


def test_weights_are_matched_by_name_before_they_are_matched_by_order():
    model = nn.Linear(3, 3)
    model.extra = nn.Parameter(torch.zeros(3))

    found = place(model, [spec("other", 3), spec("weight", 3, 3), spec("bias", 3)])

    assert [one.name for one in found.places] == ["extra", "weight", "bias"]
    assert found.how == "by name and by order of shapes"


def test_weights_may_be_buffers_or_plain_attributes_of_the_same_shape():
    model = nn.Module()
    model.register_buffer("kept", torch.zeros(2, 5))

    assert place(model, [spec("weight", 2, 5)]).places[0].name == "kept"


def test_inputs_are_no_weights():
    model = nn.Linear(3, 1, bias=False)

    found = place(model, [spec("weight", 1, 3, role="input"), spec("w", 1, 3)])

    assert found.places[0] is None
    assert found.places[1].name == "weight"


def test_a_missing_buffer_is_no_fault_and_own_tensors_are_listed():
    model = nn.Linear(2, 2, bias=False)
    model.table = torch.arange(4)

    found = place(model, [spec("weight", 2, 2), spec("running", 7, role="buffer")])

    assert found.places[1] is None
    assert [one.name for one in found.own] == ["table"]


def test_a_tensor_of_a_subclass_is_refused_by_its_name():
    class Odd(torch.Tensor):
        pass

    outputs = Outputs([Spec("out", "output", "float32", (2,))], CPU)

    with pytest.raises(Refused, match="Odd"):
        outputs.take(torch.zeros(2).as_subclass(Odd), [torch.zeros(2)])
    with pytest.raises(Refused, match="Parameter"):
        outputs.take(nn.Parameter(torch.zeros(2)), [torch.zeros(2)])


def test_strided_and_nested_outputs_are_copied_in_order():
    outputs = Outputs([Spec(f"out{i}", "output", "float32", (2, 3)) for i in range(2)], CPU)
    targets = [torch.zeros(2, 3), torch.zeros(2, 3)]

    outputs.take([torch.ones(3, 2).t(), (None, torch.full((2, 3), 2.0))], targets)

    assert targets[0].eq(1).all()
    assert targets[1].eq(2).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (torch._neg_view, "not computed yet.*Negative"),
        (torch._to_functional_tensor, "not computed yet.*Functionalize"),
        (torch._lazy_clone, "not computed yet.*copied on write"),
        (lambda x: torch._efficientzerotensor(x.shape), "not computed yet.*ZeroTensor"),
        (lambda x: torch.ones(3).expand(2, 3), "several elements at one place"),
        (lambda x: x.view(-1)[:4].as_strided((2, 3), (1, 1)).clone()[:1].expand(2, 3), "at one"),
        (lambda x: x, "memory of an input"),
        (lambda x: torch.from_numpy(x.numpy()), "memory of an input"),
    ],
)
def test_an_output_that_leaves_work_to_its_reader_is_refused(make, words):
    given, target = torch.ones(2, 3), torch.zeros(2, 3)
    outputs = Outputs([Spec("out", "output", "float32", (2, 3))], CPU)

    with pytest.raises(Refused, match=f"out .*{words}"):
        outputs.take(make(given), [target], [given])


def test_an_output_may_owe_what_the_references_own_owes():
    given, target = torch.ones(2, 3), torch.zeros(2, 3)
    outputs = Outputs([Spec("out", "output", "float32", (2, 3), ("overlapping", "shared"))], CPU)

    outputs.take(given[:1].expand(2, 3), [target], [given])

    assert target.eq(1).all()


def test_gaps_and_exchanged_axes_owe_nothing():
    wide = torch.ones(4, 10)

    for one in (wide[:, :7], wide.t(), wide[::2, 1::3], wide[:0], wide[:1, :1].squeeze()):
        assert owed(one, torch.zeros(1), [torch.ones(4)]) == {}


@pytest.mark.parametrize(
    ("line", "ways"),
    [
        ("x * 2, x.flatten()", [[], ["shared"]]),
        ("x[:1].expand(8, 4), x.sum()", [["overlapping", "shared"], []]),
    ],
)
def test_what_the_reference_owes_is_seen_by_calling_it(tmp_path, line, ways):
    path = tmp_path / "task.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        f"        return {line}\n"
        "def get_inputs():\n    return [torch.randn(6, 4)]\n"
        "def get_init_inputs():\n    return []\n"
    )

    assert owing(load(path, "cpu")) == ways


def test_a_mode_that_is_left_on_is_named_but_for_a_default_device():
    class Listens(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    outputs = Outputs([Spec("out", "output", "float32", (2,))], CPU)
    with CPU:
        outputs.take(torch.zeros(2), [torch.zeros(2)])
    with Listens(), pytest.raises(Refused, match=r"leaves a mode switched on \(.*Listens\)"):
        outputs.take(torch.zeros(2), [torch.zeros(2)])
    with Operators(), pytest.raises(Refused, match=r"leaves a mode switched on \(Operators\)"):
        outputs.take(torch.zeros(2), [torch.zeros(2)])


def test_answers_are_wiped_but_not_what_the_model_or_the_judge_holds():
    model = nn.Linear(2, 2)
    given, answer = torch.ones(4), torch.ones(4)

    wipe([answer[1:], given[:2], model.weight], [given], model)

    assert answer.isnan().all(), "the whole memory behind a view"
    assert given.eq(1).all()
    assert model.weight.isfinite().all()


def test_what_is_put_in_the_place_of_a_timer_or_a_comparison_is_named(monkeypatch):
    originals = Originals.now()
    originals.require()

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "copy_", lambda *_: None)
        with pytest.raises(Refused, match=r"replaces torch\.Tensor\.copy_"):
            originals.require()
    with monkeypatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: 0.0)
        with pytest.raises(Refused, match=r"replaces time\.perf_counter"):
            originals.require()


def test_instructions_written_over_a_clocks_are_noticed(monkeypatch):
    originals = Originals.now()
    monkeypatch.setattr("fitness.module.runner.watch._instructions", lambda _: b"other")

    with pytest.raises(Refused, match="rewrites clock_gettime"):
        originals.require()


def test_what_torch_wraps_when_its_compiler_is_imported_is_no_cheat():
    code = "from fitness.module.runner.watch import Originals\noriginals = Originals.now()\n"
    code += "import torch._dynamo\noriginals.require()"

    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("name", ["gi_frame", "tb_frame"])
def test_frames_are_watched_where_the_candidate_itself_takes_them(name):
    told = []
    watch = Watch("kernel.py", lambda _, reason: told.append(reason))
    look = compile("watch._hook('object.__getattr__', (None, name))", "kernel.py", "exec")

    watch._hook("object.__getattr__", (None, name))
    exec(look, {"watch": watch, "name": name})

    assert told == [f"looks through the frames of its callers ({name})"]


@pytest.mark.parametrize(
    ("event", "args", "name"),
    [
        ("subprocess.Popen", ("/usr/bin/curl", ["curl", "-s"], None, None), "curl"),
        ("subprocess.Popen", (b"x", [b"/bin/sh", b"-c"], None, None), "sh"),
        ("os.system", (b"rm -rf /",), "rm"),
        ("os.fork", (), "a copy of itself"),
    ],
)
def test_programs_are_named(event, args, name):
    assert program_of(event, args) == name


def test_libraries_are_told_from_own_kernels():
    theirs = [
        "ampere_sgemm_128x64_nn",
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
        "void at::native::(anonymous namespace)::softmax_warp_forward<float, 11>(...)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>()",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true>(...)",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(...)",
        "void pytorch_flash::flash_fwd_kernel<...>(...)",
    ]
    own = [
        "relu_kernel(float const*, float*, long)",
        "softmax_kernel",
        "void tiled_gemm<64, 64>(float const*, float const*, float*)",
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
    ]

    assert libraries.foreign([*theirs, *own]) == tuple(theirs)


def test_operators_that_only_move_memory_do_not_compute():
    seen = [
        "aten::empty_like",
        "aten::t",
        "aten::copy_",
        "aten::mm",
        "mine::kernel",
        "aten::add.Tensor",
    ]

    assert libraries.computing(seen) == ("aten::mm", "aten::add.Tensor")


def test_functions_that_compute_are_told_by_their_symbols():
    theirs = {
        "_ZN2at3cpu2mmERKNS_6TensorES3_": "at::cpu::mm",
        "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_": "at::_ops::add_Tensor::call",
        "_ZN2at6native7cpublas4gemmE": "at::native::cpublas::gemm",
        "_ZN2at4cuda4blas4gemmIfEEvcc": "at::cuda::blas::gemm",
        "sgemm_": "sgemm_",
        "cblas_dgemv": "cblas_dgemv",
        "cudnnConvolutionForward": "cudnnConvolutionForward",
    }
    own = [
        "_ZN2at4_ops10empty_like4callERKNS_6TensorE",
        "_ZNK2at10TensorBase8data_ptrIfEEPT_v",
        "_ZN2at8internal15invoke_parallelElllRKSt8functionIFvllEE",
        "_ZN2at15get_num_threadsEv",
        "_ZN2at4cuda26getCurrentDevicePropertiesEv",
        "_ZN3c104cuda20getCurrentCUDAStreamEa",
        "_Z4reluN2at6TensorE",
        "memcpy",
    ]

    assert {name: linked.computing(name) for name in theirs} == theirs
    assert [linked.computing(name) for name in own] == [""] * len(own)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_extensions_are_read_and_one_without_symbols_is_no_hiding_place(tmp_path):
    folder = tmp_path / "extensions" / "mine"
    folder.mkdir(parents=True)
    source = "namespace at { namespace cpu { void mm(int); } }\nvoid run() { at::cpu::mm(1); }"
    (folder / "mine.cpp").write_text(source)
    command = ["g++", "-shared", "-fPIC", "mine.cpp", "-o", "mine.so"]
    subprocess.run(command, cwd=folder, check=True)
    data = bytearray((folder / "mine.so").read_bytes())
    data[58:64] = bytes(6)  # no section headers
    (folder / "bare.so").write_bytes(data)

    assert linked.own(tmp_path) == ("bare.so", "mine.so")
    assert linked.foreign(tmp_path) == ("bare.so (without symbols)", "at::cpu::mm")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "import numpy as np\ndef f(a): return np.linalg.inv(np.asarray(a))",
            ("numpy.linalg.inv",),
        ),
        (
            "from numpy import matmul as m\nclass A:\n    def f(self, a): return m(a, a)",
            ("numpy.matmul",),
        ),
        ("import numpy\nf = numpy.exp", ("numpy.exp",)),
        ("import numpy\nf = lambda x: numpy.add.reduce(x)", ("numpy.add.reduce", "numpy.add")),
        ("import numpy\nasync def f(x): return numpy.sin(x)", ("numpy.sin",)),
        ("import scipy.linalg", ("scipy",)),
        ("import numpy as np\nT = np.add.accumulate(np.cos(np.arange(9))).astype(np.float32)", ()),
        ("import numpy as np\nclass A:\n    def __init__(self): self.t = np.exp(2)", ()),
        ("import numpy as np\ndef f(a): return np.ctypeslib.as_array(a), np.float32(np.pi)", ()),
        ("def broken(:", ()),
    ],
)
def test_numpys_functions_are_found_where_they_would_compute(text, found):
    assert written.foreign(text) == found


def test_own_kernels_are_not_shown_by_the_absence_of_others():
    demand = Demand(own_kernels=True)

    assert "it has none" in demand.objection(Execution("calls", ran=("aten::detach",)))
    assert demand.objection(Execution("calls", own=("mine.so",))) == ""
    assert demand.objection(Execution("graph", unseen="the profiler saw nothing")) == ""


def test_frames_survive_the_way_there_and_back():
    request = Request(Op.RUN, index=3, calls=7, handle=bytes(range(64)))

    assert Request.unpack(request.pack(99)) == (request, 99)
    assert Reply.unpack(Reply(6, 5, a=4, count=3, payload=b"abc").pack()).payload[:3] == b"abc"


def test_orders_hold_arguments_of_the_constructor_and_of_forward(tmp_path):
    told = {
        "leaves": [["x", "input", "float32", [2], []]],
        "outputs": [["out", "output", "float32", [2], ["lazy"]]],
        "forward": [{"list": [{"leaf": 0}, {"tuple": [{"value": 3}]}]}, {"value": None}],
    }
    (tmp_path / "orders.json").write_text(json.dumps(told))
    (tmp_path / "constructor.pickle").write_bytes(pickle.dumps(([1, (2, 3)], {"eps": 0.1})))

    orders = Orders.read(tmp_path)

    assert orders.outputs[0].owes == ("lazy",)
    assert (orders.args, orders.kwargs) == ([1, (2, 3)], {"eps": 0.1})
    assert [filled(one, ["X"]) for one in orders.forward] == [["X", (3,)], None]


def test_languages_are_found_by_name_and_by_the_ending_of_a_file():
    found = languages.of_suffix()

    assert {suffix: one.name for suffix, one in found.items()} == {
        ".cpp": "cpp",
        ".cu": "cuda",
        ".py": "module",
    }
    assert found[".py"].devices == ("cuda", "cpu")
    with pytest.raises(ValueError, match="choose from: cpp, cuda, module"):
        languages.find("fortran")
