/* SPDX-License-Identifier: Apache-2.0 */
/* Calls kernels from Python with as little overhead as possible.
 *
 * Caller(sizes, shape, parameters, otherwise) is a function of len(sizes) vectors. Once `single` is
 * set to the address of a kernel, a call with plain float64 arrays of the right lengths runs it and
 * returns a new array of `shape`. Once `rows` is set to (address of a batch kernel, most), a call
 * also accepts up to `most` rows of states: arrays (count, size), results (count, …). All other
 * calls go to the Python function `otherwise`. The result is written to `out=` if this is a plain
 * array of the right shape that shares no memory with the arguments. `parameters` is the kernel's
 * last vector; it never changes.
 *
 * rows(address, states, parameters, out, threads, past) runs a batch kernel over the rows of arrays,
 * without the interpreter lock. If `past` is true, results are written past the processor's caches.
 *
 * Forwarding is a base class whose instances hold a `_target`. For a derived class that was passed to
 * shortened(class), a call with q, qd, qdd (and `out=` if the target is a Caller) goes straight to
 * the target; all other calls, and those of instances without a target, go to `__call__`.
 *
 * closing(handle) returns an object that closes the library of this handle when it is freed, hence
 * after all finalisers of objects that are freed with it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#include <pthread.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#ifndef BUILT_FROM
#define BUILT_FROM "" /* if it is built with the package: the hash of this file */
#endif
#define STATES 3 /* q, qd, qdd: the arguments of a plain call */
#define MOST_VECTORS 8
#define MOST_AXES 4
#define MOST_THREADS 256
#define ROWS_AT_ONCE 512 /* a multiple of every kernel's lanes */
#define ROWS_IN_ROOM 32 /* likewise; their results fit into the processor's cache */

#ifndef Py_BEGIN_CRITICAL_SECTION /* before Python 3.13 the interpreter's lock is always held */
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

typedef void (*single_kernel)(const double *const *x, double *out);
typedef void (*batch_kernel)(const double *const *x, double *out, long count);

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    single_kernel single; /* NULL until it is set */
    batch_kernel rows;
    npy_intp most; /* the most rows that `rows` is called with here; written after it, read before */
    Py_ssize_t vectors;
    npy_intp sizes[MOST_VECTORS];
    int axes;
    npy_intp shape[MOST_AXES];
    PyObject *parameters;
    PyObject *otherwise;
} Caller;

static int is_plain(PyObject *x, int axes)
{
    if (!PyArray_CheckExact(x)) /* a subclass may carry more than numbers: a mask, a unit */
        return 0;
    PyArrayObject *a = (PyArrayObject *)x;
    return PyArray_TYPE(a) == NPY_DOUBLE && PyArray_NDIM(a) == axes
        && PyArray_CHKFLAGS(a, NPY_ARRAY_CARRAY_RO) && PyArray_ISNOTSWAPPED(a);
}

static int overlap(PyArrayObject *a, PyArrayObject *b)
{
    const char *x = PyArray_BYTES(a), *y = PyArray_BYTES(b);
    return x < y + PyArray_NBYTES(b) && y < x + PyArray_NBYTES(a);
}

/* Can a result of this shape be written to `out` while the arguments are read? */
static int takes_result(Caller *self, PyObject *out, int axes, const npy_intp *shape,
                        PyObject *const *arguments)
{
    if (!is_plain(out, axes) || !PyArray_ISWRITEABLE((PyArrayObject *)out))
        return 0;
    for (int k = 0; k < axes; k++)
        if (PyArray_DIM((PyArrayObject *)out, k) != shape[k])
            return 0;
    for (Py_ssize_t i = 0; i < self->vectors; i++)
        if (overlap((PyArrayObject *)out, (PyArrayObject *)arguments[i]))
            return 0;
    return 1;
}

static PyObject *caller_call(PyObject *object, PyObject *const *arguments, size_t flags,
                             PyObject *names)
{
    Caller *self = (Caller *)object;
    const double *x[MOST_VECTORS + 1];
    PyObject *out = NULL;
    if (PyVectorcall_NARGS(flags) != self->vectors || !self->vectors)
        goto otherwise;
    int many = is_plain(arguments[0], 2); /* a batch, not one state */
    npy_intp shape[MOST_AXES + 1] = {many ? PyArray_DIM((PyArrayObject *)arguments[0], 0) : 1};
    memcpy(shape + 1, self->shape, sizeof self->shape);
    single_kernel single = many ? NULL : __atomic_load_n(&self->single, __ATOMIC_RELAXED);
    if (many ? shape[0] > __atomic_load_n(&self->most, __ATOMIC_ACQUIRE) || !self->rows : !single)
        goto otherwise;
    for (Py_ssize_t i = 0; i < self->vectors; i++) {
        PyArrayObject *a = (PyArrayObject *)arguments[i];
        if (!is_plain(arguments[i], 1 + many) || PyArray_DIM(a, many) != self->sizes[i]
            || (many && PyArray_DIM(a, 0) != shape[0]))
            goto otherwise;
        x[i] = PyArray_DATA(a);
    }
    x[self->vectors] = PyArray_DATA((PyArrayObject *)self->parameters);
    int axes = self->axes + many;
    const npy_intp *whole = shape + !many;
    if (names) {
        out = arguments[self->vectors];
        if (PyTuple_GET_SIZE(names) != 1
            || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out")
            || !takes_result(self, out, axes, whole, arguments))
            goto otherwise;
        Py_INCREF(out);
    } else {
        out = PyArray_SimpleNew(axes, whole, NPY_DOUBLE);
    }
    if (out && many)
        self->rows(x, PyArray_DATA((PyArrayObject *)out), shape[0]);
    else if (out)
        single(x, PyArray_DATA((PyArrayObject *)out));
    return out;
otherwise:
    return PyObject_Vectorcall(self->otherwise, arguments, flags, names);
}

static int read_lengths(PyObject *tuple, Py_ssize_t most, npy_intp *lengths)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > most)
        PyErr_SetString(PyExc_ValueError, "too many vectors or axes");
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        lengths[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    return PyErr_Occurred() ? -1 : (int)count;
}

static int set_single(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    unsigned long long address = value ? PyLong_AsUnsignedLongLong(value) : 0;
    if (!value || PyErr_Occurred())
        return -1;
    single_kernel *place = &((Caller *)object)->single;
    __atomic_store_n(place, (single_kernel)(uintptr_t)address, __ATOMIC_RELAXED);
    return 0;
}

static int set_rows(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    Caller *self = (Caller *)object;
    unsigned long long address;
    Py_ssize_t most;
    if (!value || !PyArg_ParseTuple(value, "Kn", &address, &most))
        return -1;
    __atomic_store_n(&self->rows, (batch_kernel)(uintptr_t)address, __ATOMIC_RELAXED);
    __atomic_store_n(&self->most, most, __ATOMIC_RELEASE);
    return 0;
}

static PyObject *caller_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"sizes", "shape", "parameters", "otherwise", NULL};
    PyObject *sizes, *shape, *parameters, *otherwise;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!OO", names, &PyTuple_Type, &sizes,
                                     &PyTuple_Type, &shape, &parameters, &otherwise))
        return NULL;
    if (!is_plain(parameters, 1)) {
        PyErr_SetString(PyExc_TypeError, "parameters: expected a contiguous float64 vector");
        return NULL;
    }
    Caller *self = (Caller *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = caller_call;
    self->parameters = Py_NewRef(parameters);
    self->otherwise = Py_NewRef(otherwise);
    self->vectors = read_lengths(sizes, MOST_VECTORS, self->sizes);
    self->axes = PyErr_Occurred() ? -1 : read_lengths(shape, MOST_AXES, self->shape);
    if (self->axes < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int caller_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Caller *)self)->otherwise);
    Py_VISIT(((Caller *)self)->parameters);
    return 0;
}

static int caller_clear(PyObject *self)
{
    Py_CLEAR(((Caller *)self)->otherwise);
    return 0;
}

static void caller_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    Py_XDECREF(((Caller *)self)->parameters);
    Py_TYPE(self)->tp_free(self);
}

static PyGetSetDef caller_attributes[] = {
    {"single", NULL, set_single, "address: the kernel for one state", NULL},
    {"rows", NULL, set_rows, "(address, most): the batch kernel for a few rows", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject caller_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "robot_dynamics.Caller",
    .tp_basicsize = sizeof(Caller),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Caller, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = caller_new,
    .tp_dealloc = caller_dealloc,
    .tp_traverse = caller_traverse,
    .tp_clear = caller_clear,
    .tp_getset = caller_attributes,
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *target;
} Forwarding;

static PyObject *text_call, *text_out;

/* A new reference to the target, as another thread may replace it; or NULL. */
static PyObject *target_of(PyObject *object)
{
    PyObject *target;
    Py_BEGIN_CRITICAL_SECTION(object);
    target = Py_XNewRef(((Forwarding *)object)->target);
    Py_END_CRITICAL_SECTION();
    return target;
}

static PyObject *forwarding_call(PyObject *object, PyObject *const *arguments, size_t flags,
                                 PyObject *names)
{
    PyObject *target = target_of(object);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    int plain = count == STATES
        && (!names
            || (PyTuple_GET_SIZE(names) == 1 && PyTuple_GET_ITEM(names, 0) == text_out
                && target && Py_TYPE(target) == &caller_type));
    /* before Python 3.12, calls of a class whose __call__ was replaced still arrive here */
    if (target && plain && Py_TYPE(object)->tp_call == PyVectorcall_Call) {
        PyObject *result = PyObject_Vectorcall(target, arguments, flags, names);
        Py_DECREF(target);
        return result;
    }
    Py_XDECREF(target);
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject **all = PyMem_Malloc((count + named + 1) * sizeof *all);
    if (!all)
        return PyErr_NoMemory();
    all[0] = object;
    memcpy(all + 1, arguments, (count + named) * sizeof *all);
    PyObject *result = PyObject_VectorcallMethod(text_call, all, count + 1, names);
    PyMem_Free(all);
    return result;
}

static PyObject *forwarding_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    (void)arguments;
    (void)keywords;
    Forwarding *self = (Forwarding *)type->tp_alloc(type, 0);
    if (self)
        self->call = forwarding_call;
    return (PyObject *)self;
}

static int forwarding_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Forwarding *)self)->target);
    return 0;
}

static int forwarding_clear(PyObject *self)
{
    Py_CLEAR(((Forwarding *)self)->target);
    return 0;
}

static void forwarding_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    forwarding_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *get_target(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *target = target_of(self);
    return target ? target : Py_NewRef(Py_None);
}

static int set_target(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(self);
    old = ((Forwarding *)self)->target;
    ((Forwarding *)self)->target = value && value != Py_None ? Py_NewRef(value) : NULL;
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
    return 0;
}

static PyGetSetDef forwarding_attributes[] = {
    {"_target", get_target, set_target, "The target of plain calls; None: `__call__`.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject forwarding_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "robot_dynamics.Forwarding",
    .tp_basicsize = sizeof(Forwarding),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = forwarding_new,
    .tp_dealloc = forwarding_dealloc,
    .tp_traverse = forwarding_traverse,
    .tp_clear = forwarding_clear,
    .tp_getset = forwarding_attributes,
};

/* If __call__ of the class or of a derived class is replaced, Python calls it as usual. */
static PyObject *shortened(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, &forwarding_type)) {
        PyErr_SetString(PyExc_TypeError, "shortened: expected a class derived from Forwarding");
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)class;
    type->tp_vectorcall_offset = offsetof(Forwarding, call);
    type->tp_call = PyVectorcall_Call;
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(type);
    return Py_NewRef(class);
}

/* Rows that are handed out piece by piece: a thread that starts late takes fewer. */
typedef struct {
    batch_kernel kernel;
    Py_ssize_t vectors;
    const double *x[MOST_VECTORS + 1];
    npy_intp widths[MOST_VECTORS];
    double *out;
    npy_intp width;
    npy_intp count;
    npy_intp next;
    int past; /* write the results past the caches? */
} Work;

/* Copy numbers past the caches; memory that is written to in the usual way is read before. */
static void stream(double *to, const double *from, npy_intp count)
{
#ifdef __SSE2__
    for (; count && (uintptr_t)to % sizeof(__m128d); count--)
        *to++ = *from++;
    for (; count > 1; count -= 2, to += 2, from += 2)
        _mm_stream_pd(to, _mm_loadu_pd(from));
    _mm_sfence();
#endif
    memcpy(to, from, count * sizeof *to);
}

static void *do_work(void *object)
{
    Work *work = object;
    const double *x[MOST_VECTORS + 1];
    x[work->vectors] = work->x[work->vectors];
    double *room = work->past ? malloc(ROWS_IN_ROOM * work->width * sizeof *room) : NULL;
    npy_intp most = room ? ROWS_IN_ROOM : ROWS_AT_ONCE;
    for (;;) {
        npy_intp from = __atomic_fetch_add(&work->next, most, __ATOMIC_RELAXED);
        if (from >= work->count)
            break;
        npy_intp rows = work->count - from < most ? work->count - from : most;
        for (Py_ssize_t i = 0; i < work->vectors; i++)
            x[i] = work->x[i] + from * work->widths[i];
        double *out = work->out + from * work->width;
        work->kernel(x, room ? room : out, rows);
        if (room)
            stream(out, room, rows * work->width);
    }
    free(room);
    return NULL;
}

static PyObject *rows(PyObject *module, PyObject *arguments)
{
    (void)module;
    unsigned long long address;
    PyObject *states, *parameters, *out;
    int threads, past;
    if (!PyArg_ParseTuple(arguments, "KO!OOip", &address, &PyTuple_Type, &states, &parameters, &out,
                          &threads, &past))
        return NULL;
    Py_ssize_t vectors = PyTuple_GET_SIZE(states);
    int sound = vectors >= 1 && vectors <= MOST_VECTORS && is_plain(parameters, 1)
        && is_plain(out, 2) && PyArray_ISWRITEABLE((PyArrayObject *)out);
    npy_intp count = sound ? PyArray_DIM((PyArrayObject *)out, 0) : 0;
    for (Py_ssize_t i = 0; i < vectors && sound; i++) {
        PyObject *x = PyTuple_GET_ITEM(states, i);
        sound = is_plain(x, 2) && PyArray_DIM((PyArrayObject *)x, 0) == count;
    }
    if (!sound) {
        PyErr_SetString(PyExc_TypeError, "rows: expected contiguous float64 arrays of one length");
        return NULL;
    }
    Work work = {.kernel = (batch_kernel)(uintptr_t)address, .vectors = vectors, .count = count,
                 .past = past};
    for (Py_ssize_t i = 0; i < vectors; i++) {
        PyArrayObject *x = (PyArrayObject *)PyTuple_GET_ITEM(states, i);
        work.x[i] = PyArray_DATA(x);
        work.widths[i] = PyArray_DIM(x, 1);
    }
    work.x[vectors] = PyArray_DATA((PyArrayObject *)parameters);
    work.out = PyArray_DATA((PyArrayObject *)out);
    work.width = PyArray_DIM((PyArrayObject *)out, 1);
    threads = threads > MOST_THREADS ? MOST_THREADS : threads;
    Py_BEGIN_ALLOW_THREADS
    pthread_t helpers[MOST_THREADS];
    int helping = 0;
    while (helping < threads - 1 && !pthread_create(&helpers[helping], NULL, do_work, &work))
        helping++;
    do_work(&work);
    while (helping)
        pthread_join(helpers[--helping], NULL);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static void close_library(PyObject *capsule)
{
#ifdef _WIN32
    FreeLibrary(PyCapsule_GetPointer(capsule, NULL));
#else
    dlclose(PyCapsule_GetPointer(capsule, NULL));
#endif
}

static PyObject *closing(PyObject *module, PyObject *handle)
{
    (void)module;
    void *library = PyLong_AsVoidPtr(handle);
    return library ? PyCapsule_New(library, NULL, close_library) : NULL;
}

static PyMethodDef functions[] = {
    {"rows", rows, METH_VARARGS, "Run a batch kernel over the rows of arrays."},
    {"shortened", shortened, METH_O, "The class, with plain calls forwarded to the target."},
    {"closing", closing, METH_O, "An object that closes a library when it is freed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_caller", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__caller(void)
{
    import_array();
    text_call = PyUnicode_InternFromString("__call__");
    text_out = PyUnicode_InternFromString("out");
    if (!text_call || !text_out || PyType_Ready(&caller_type) < 0
        || PyType_Ready(&forwarding_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&module_definition);
#ifdef Py_GIL_DISABLED
    if (module)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    if (module
        && (PyModule_AddObjectRef(module, "Caller", (PyObject *)&caller_type) < 0
            || PyModule_AddObjectRef(module, "Forwarding", (PyObject *)&forwarding_type) < 0
            || PyModule_AddStringConstant(module, "built_from", BUILT_FROM) < 0))
        Py_CLEAR(module);
    return module;
}
