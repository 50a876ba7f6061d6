/* Arrays and NumPy scalars as the core takes them, tensors made, two gradients added.

   Called by all files of core with the GIL. Takes any object: types are tested here. An array is written only where
   nothing else refers to it. Raises MemoryError, and what NumPy raises when it adds. */
#include "core.h"
#include <numpy/arrayscalars.h>

struct core core;
long long next_sequence;

PyObject *core_next_sequence(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyLong_FromLongLong(next_sequence++);
}

int read_numbers(PyObject *data, struct numbers *found) {
  PyTypeObject *type = data ? Py_TYPE(data) : NULL;
  if (type == &PyArray_Type) {
    PyArrayObject *array = (PyArrayObject *)data;
    found->kind = PyArray_TYPE(array);
    if ((found->kind != NPY_FLOAT && found->kind != NPY_DOUBLE) || !PyArray_ISCARRAY_RO(array)) return 0;
    found->array = array;
    found->at = PyArray_DATA(array);
    found->count = PyArray_SIZE(array);
    return 1;
  }
  if (type == &PyFloatArrType_Type || type == &PyDoubleArrType_Type) {
    found->kind = type == &PyFloatArrType_Type ? NPY_FLOAT : NPY_DOUBLE;
    found->array = NULL;
    found->at = scalar_value(data);
    found->count = 1;
    return 1;
  }
  return 0;
}

/* row_major(object, …): whether all that are arrays lie row by row; see kernels/memory_order.py. */
PyObject *core_row_major(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  (void)self;
  for (Py_ssize_t i = 0; i < count; i++)
    if (Py_TYPE(args[i]) == &PyArray_Type && !is_row_major((PyArrayObject *)args[i])) Py_RETURN_FALSE;
  Py_RETURN_TRUE;
}

void *scalar_value(PyObject *scalar) {
  if (Py_TYPE(scalar) == &PyFloatArrType_Type) return &((PyFloatScalarObject *)scalar)->obval;
  return &((PyDoubleScalarObject *)scalar)->obval;
}

PyObject *new_scalar(int kind, double value) {
  PyTypeObject *type = kind == NPY_FLOAT ? &PyFloatArrType_Type : &PyDoubleArrType_Type;
  PyObject *made = type->tp_alloc(type, 0);
  if (!made) return NULL;
  if (kind == NPY_FLOAT)
    ((PyFloatScalarObject *)made)->obval = (float)value;
  else
    ((PyDoubleScalarObject *)made)->obval = value;
  return made;
}

PyObject *new_tensor(PyObject *data) {
  PyObject *made = data ? core.tensor->tp_alloc(core.tensor, 0) : NULL;
  if (!made) {
    Py_XDECREF(data);
    return NULL;
  }
  SET_NEW(made, core.data, data);
  SET_NEW(made, core.edge, Py_NewRef(Py_None));
  SET_NEW(made, core.storage_slot, Py_NewRef(Py_None));
  SET_NEW(made, core.view, Py_NewRef(Py_None));
  return made;
}

int mark(PyObject *tensor) {
  PyObject *make = Py_XNewRef(core.mark), *storage = make ? PyObject_CallNoArgs(make) : Py_NewRef(Py_None);
  Py_XDECREF(make);
  if (!storage) return -1;
  set_slot(tensor, core.storage_slot, storage);
  Py_DECREF(storage);
  return 0;
}

static const struct program addition = {.sources = 2, .steps = 1, .step = {{DO_ADD, 0, 0, 1, 0}}};

int held_by_one(PyObject *data) {
  PyArrayObject *array = (PyArrayObject *)data;
  return Py_TYPE(data) == &PyArray_Type && Py_REFCNT(data) == 1 && !PyArray_BASE(array) && PyArray_ISCARRAY(array) &&
         PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
}

PyObject *sum_of_two(PyObject *present, PyObject *grad) {
  struct numbers a, b;
  PyObject *total;
  if (read_numbers(present, &a) && read_numbers(grad, &b) && a.kind == b.kind) {
    const void *sources[] = {a.at, b.at};
    if (!a.array && !b.array) {
      total = new_scalar(a.kind, 0);
      if (total) table_of(a.kind)->run_program(&addition, sources, 0, scalar_value(total), 1);
      Py_DECREF(present);
      return total;
    }
    if (a.array && b.array && same_shape(a.array, b.array) && a.count <= 1 << 15) {
      if (held_by_one(present)) {
        table_of(a.kind)->run_program(&addition, sources, 0, PyArray_DATA(a.array), a.count);
        return present;
      }
      total = (PyObject *)empty_like(a.array);
      if (total) table_of(a.kind)->run_program(&addition, sources, 0, PyArray_DATA((PyArrayObject *)total), a.count);
      Py_DECREF(present);
      return total;
    }
  }
  if (Py_TYPE(grad) == &PyArray_Type && held_by_one(present) &&
      PyArray_TYPE((PyArrayObject *)present) == PyArray_TYPE((PyArrayObject *)grad) &&
      same_shape((PyArrayObject *)present, (PyArrayObject *)grad)) {
    total = PyNumber_InPlaceAdd(present, grad);
  } else {
    total = PyNumber_Add(present, grad);
  }
  Py_DECREF(present);
  return total;
}
