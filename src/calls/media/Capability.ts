/** The media capability. Its background loop also polls image jobs. */
import { Effect, Layer } from "effect"
import { MediaHttp, MediaModelsHttp } from "./Http.ts"
import { Jobs } from "./Jobs.ts"
import { Media } from "./Media.ts"
import * as settings from "./Settings.ts"

export const capability = {
  handlers: Layer.merge(MediaHttp, MediaModelsHttp),
  layer: Layer.provideMerge(Media.layer, Jobs.layer),
  jobs: Jobs.layerJobs,
  names: Effect.map(settings.MediaModels, (models) => models.map(({ id }) => id)),
  settings
}
