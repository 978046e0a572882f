"""The public names, each written down once: `nearlabel.common.lazy` loads them on first use."""

from nearlabel.collection.collection import Collection as Collection
from nearlabel.collection.folder_checks import CollectionError as CollectionError
from nearlabel.collection.folder_checks import is_collection as is_collection
from nearlabel.collection.questions import Question as Question
from nearlabel.collection.records import Change as Change
from nearlabel.collection.records import Decision as Decision
from nearlabel.collection.records import FileState as FileState
from nearlabel.collection.records import Item as Item
from nearlabel.collection.records import NewItem as NewItem
from nearlabel.collection.records import Settings as Settings
from nearlabel.collection.records import Suggestion as Suggestion
from nearlabel.collection.records import TagCount as TagCount
from nearlabel.collection.records import TaggedItems as TaggedItems
from nearlabel.collection.records import Voter as Voter
from nearlabel.collection.store_checks import CollectionCheck as CollectionCheck
