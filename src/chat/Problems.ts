import { Problem } from "../kernel/Problem.ts"

export class ModelNotFound extends Problem<ModelNotFound>()("ModelNotFound", {
  status: 404,
  error: "no such model; GET /v1/models lists them",
  code: "model_not_found"
}) {}
