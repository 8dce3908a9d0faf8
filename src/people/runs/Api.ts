/** Routes for runs. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { RunId } from "../../kernel/Ids.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { InvalidKey } from "../credentials/Problems.ts"
import { KeyOrTokenOfKeys } from "../credentials/Security.ts"
import { RunNeedsKey, RunNotFound, TooManyRuns } from "./Problems.ts"
import { NewRun, Run, RunDetails, RunPage, RunQuery, RunWithKey } from "./Run.ts"

const ofRun = Schema.Struct({ run_id: RunId })

export class RunsApi extends HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.post("create", "/v1/runs")
      .setPayload(NewRun)
      .addSuccess(
        Envelope(RunWithKey).annotations(HttpApiSchema.annotations({ status: 201, identifier: "RunCreated" }))
      )
      .addError(InvalidRequest)
      .addError(RunNeedsKey)
      .addError(InvalidKey)
      .addError(TooManyRuns)
      .annotate(Example, {
        body: {
          name: "nightly report",
          limit: { usd: 0.5, requests: 100 },
          expires_in: 900,
          tags: { project: "atlas" }
        }
      })
      .annotate(OpenApi.Summary, "Create a run with its own budget and key; only this response contains the key")
      .annotate(
        OpenApi.Description,
        "Send an API key or a run's key. A call with the run's key counts against the limits of the run, all runs above it and the API " +
          "key. Each of them must admit the call. A limit must not exceed a limit above it. No credit is moved, so the unused part of a limit stays " +
          "available."
      )
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/runs")
      .setUrlParams(RunQuery)
      .addSuccess(Envelope(RunPage))
      .addError(InvalidRequest)
      .annotate(
        OpenApi.Summary,
        "List runs, newest first: all below the API key, the run and all below it, or those of the tenant's keys that the user may see"
      )
  )
  .add(
    HttpApiEndpoint.get("run", "/v1/runs/:run_id")
      .setPath(ofRun)
      .addSuccess(Envelope(RunDetails))
      .addError(RunNotFound)
      .annotate(
        OpenApi.Summary,
        "Get a run with its limit, its spending by model (including the runs below it) and its children"
      )
  )
  .add(
    HttpApiEndpoint.del("end", "/v1/runs/:run_id")
      .setPath(ofRun)
      .addSuccess(Envelope(Run))
      .addError(RunNotFound)
      .annotate(OpenApi.Summary, "End a run and all runs below it; open calls continue and are charged")
  )
  .middleware(KeyOrTokenOfKeys) {}
