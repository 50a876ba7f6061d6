/* One node's derivatives on small plain arrays, by its plan.

   Called by core/backward_pass.c with the GIL. The plan was checked by core/plan.c; what the node holds was not: slots are
   tested before they are used, and what has changed or is not plain is declined, for Python to run the node. Raises
   only MemoryError. */
#include "core.h"

/* What the node saved is still there and was not written to: 1; 0: Python must look (and will raise, most likely). */
static int unchanged(PyObject *storage, PyObject *expected) {
  if (storage == Py_None) return 1;
  if (!storage || !expected || !PyLong_CheckExact(expected)) return 0;
  Py_INCREF(storage), Py_INCREF(expected); /* the version may be a property */
  PyObject *version = PyObject_GetAttr(storage, core.name_version);
  int same = version == expected;
  if (version && !same && PyLong_CheckExact(version)) same = PyObject_RichCompareBool(version, expected, Py_EQ) == 1;
  if (!version) PyErr_Clear();
  Py_XDECREF(version);
  Py_DECREF(storage), Py_DECREF(expected);
  return same;
}

static int is_tensor(PyObject *object) {
  return object && (Py_TYPE(object) == core.tensor || PyType_IsSubtype(Py_TYPE(object), core.tensor_state));
}

/* Whether all that the node saved is as it was. Python code may run in here. */
static int all_unchanged(struct plan *plan, PyObject *node) {
  for (int i = 0; i < plan->inputs; i++) {
    PyObject *tensor = plan->saves[i] ? SLOT(node, plan->input_slot[i]) : core.not_saved;
    if (tensor == core.not_saved) continue;
    if (!is_tensor(tensor) || !unchanged(SLOT(tensor, core.storage_slot), SLOT(node, plan->version_slot[i]))) return 0;
  }
  return !plan->saves_out || unchanged(SLOT(node, plan->out_storage), SLOT(node, plan->out_version));
}

/* A gradient that broadcasting made of one number, as that of a sum, is taken as that number. */
static int read_gradient(PyObject *grad, struct numbers *found, int *single) {
  *single = 0;
  if (read_numbers(grad, found)) return 1;
  if (Py_TYPE(grad) != &PyArray_Type) return 0;
  PyArrayObject *array = (PyArrayObject *)grad;
  found->kind = PyArray_TYPE(array);
  if ((found->kind != NPY_FLOAT && found->kind != NPY_DOUBLE) || !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array) ||
      !PyArray_SIZE(array))
    return 0;
  for (int i = 0; i < PyArray_NDIM(array); i++)
    if (PyArray_STRIDE(array, i) && PyArray_DIM(array, i) > 1) return 0;
  found->array = array;
  found->at = PyArray_DATA(array);
  found->count = PyArray_SIZE(array);
  *single = 1;
  return 1;
}

static int read_saved(PyObject *data, const struct numbers *grad, struct numbers *found, int *single) {
  if (!data || !read_numbers(data, found) || found->kind != grad->kind) return 0;
  *single = !found->array || !PyArray_NDIM(found->array);
  return *single || (grad->array && same_shape(found->array, grad->array));
}

/* Whether the options that the node keeps are the defaults, which the programs were made for. */
static int at_defaults(struct plan *plan, PyObject *node) {
  for (int c = 0; c < plan->constants; c++) {
    PyObject *value = SLOT(node, plan->constant_slot[c]);
    if (value == plan->constant[c]) continue;
    if (!value) return 0;
    Py_INCREF(value); /* it may be any object, and compare itself */
    int same = PyObject_RichCompareBool(value, plan->constant[c], Py_EQ);
    Py_DECREF(value);
    if (same < 0) PyErr_Clear();
    if (same != 1) return 0;
  }
  return 1;
}

/* Whether the inputs that a derivative reads are among those that the node keeps. */
static int has_sources(const struct derivative *rule, unsigned have) {
  for (int s = 0; s < rule->program.sources; s++)
    if (rule->source[s] >= 0 && !(have >> rule->source[s] & 1)) return 0;
  return 1;
}

/* Compute the gradients of the wanted edges. 1: done, 0: declined, -1: an exception. `grad` may be overwritten if only
   the caller holds it. */
int plan_run(struct plan *plan, PyObject *node, PyObject *grad, unsigned wanted, PyObject **found) {
  struct numbers g, out = {0}, input[MOST_INPUTS];
  int grad_single, out_single = 0, input_single[MOST_INPUTS] = {0}, last = -1;
  if (plan->restore_slot && SLOT(node, plan->restore_slot) != Py_None) return 0;
  if (!at_defaults(plan, node) || !all_unchanged(plan, node)) return 0;
  /* From here on no Python code runs, so that what is found below holds to the end. */
  if (!read_gradient(grad, &g, &grad_single) || g.count > 1 << 17) return 0;
  const int scalar = !g.array || !PyArray_NDIM(g.array);
  unsigned have = 0;
  for (int i = 0; i < plan->inputs; i++) {
    PyObject *tensor = plan->saves[i] ? SLOT(node, plan->input_slot[i]) : core.not_saved;
    if (tensor == core.not_saved) continue;
    if (!is_tensor(tensor) || !read_saved(SLOT(tensor, core.data), &g, &input[i], &input_single[i])) return 0;
    have |= 1u << i;
  }
  if (plan->saves_out && !read_saved(SLOT(node, plan->out_slot), &g, &out, &out_single)) return 0;
  for (int e = 0; e < plan->differentiable; e++)
    if (wanted >> e & 1 && !has_sources(&plan->derivative[e], have)) return 0;
  for (int e = 0; e < plan->differentiable; e++) {
    found[e] = NULL;
    if (wanted >> e & 1) last = e;
  }
  for (int e = 0; e <= last; e++) {
    if (!(wanted >> e & 1)) continue;
    const struct derivative *rule = &plan->derivative[e];
    if (rule->passes) {
      found[e] = Py_NewRef(grad);
      continue;
    }
    const void *sources[MOST_SOURCES];
    int single = 0;
    for (int s = 0; s < rule->program.sources; s++) {
      int from = rule->source[s];
      sources[s] = from == SOURCE_GRAD ? g.at : from == SOURCE_OUT ? out.at : input[from].at;
      if (from == SOURCE_GRAD ? grad_single : from == SOURCE_OUT ? out_single : input_single[from]) single |= 1 << s;
    }
    if (scalar) {
      found[e] = new_scalar(g.kind, 0);
      if (found[e]) table_of(g.kind)->run_program(&rule->program, sources, single, scalar_value(found[e]), 1);
    } else {
      if (e == last && !grad_single && held_by_one(grad))
        found[e] = Py_NewRef(grad);
      else
        found[e] = (PyObject *)empty_like(g.array);
      if (found[e])
        table_of(g.kind)->run_program(&rule->program, sources, single, PyArray_DATA((PyArrayObject *)found[e]), g.count);
    }
    if (!found[e]) {
      for (int k = 0; k < e; k++) Py_CLEAR(found[k]);
      return -1;
    }
  }
  return 1;
}

void plan_free(struct plan *plan, PyObject *node) {
  for (int i = 0; i < plan->inputs; i++)
    if (plan->saves[i] && SLOT(node, plan->input_slot[i]) != core.not_saved) set_slot(node, plan->input_slot[i], Py_None);
  if (plan->saves_out) {
    set_slot(node, plan->out_slot, Py_None);
    set_slot(node, plan->out_storage, Py_None);
  }
}
