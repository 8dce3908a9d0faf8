import { layerMemory, layerTransfersMemory } from "tollgate/testing"
      const MyLedger = { layer: layerMemory }
      const MyTransfers = { layer: layerTransfersMemory }
      const it = async (name: string, check: () => Promise<unknown>) => { await check(); console.log(name) }
import { checkLedger, ofLayer } from "tollgate/testing"

it("keeps its books", () => checkLedger({ make: ofLayer(MyLedger.layer) }))
