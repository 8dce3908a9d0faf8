/** The toy as one value. */
import { WordsHttp } from "./Http.ts"
import * as tool from "./Settings.ts"
import { Words } from "./Words.ts"

export const capability = { handlers: WordsHttp, layer: Words.layer, tool }
