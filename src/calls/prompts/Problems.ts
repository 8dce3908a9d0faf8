import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"

export class ModelNotFound extends Problem<ModelNotFound>()("ModelNotFound", {
  status: 404,
  error: "no such model; GET /v1/models lists them",
  code: "model_not_found"
}) {}

/** The deployment does not serve the requested model. This problem is an `InvalidRequest` for the field `model`. */
export class UnknownChatModel extends InvalidRequest {
  /** The requested name. */
  readonly model: string

  // @effect-diagnostics-next-line overriddenSchemaConstructor:off -- it is constructed from a name but decoded as an InvalidRequest
  constructor(model: string) {
    super({
      message: `model: there is no model ${JSON.stringify(model.slice(0, 100))}; GET /v1/models lists them`,
      field: "model",
      rule: "must be a model from GET /v1/models"
    })
    this.model = model
  }
}
