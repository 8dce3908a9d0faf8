/** Search as one value. */
import { SearchHttp } from "./Http.ts"
import * as tool from "./Settings.ts"
import { Search } from "./Search.ts"

export const capability = { handlers: SearchHttp, layer: Search.layer, tool }
